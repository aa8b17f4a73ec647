/* An operator of one's own: example.SoftSign(x) = x / (alpha + |x|).
 *
 *     cc -shared -fPIC -O2 -I crates/operators/include -o libsoft_sign.so crates/operators/examples/soft_sign.c -lm
 *     armet run model.onnx --operators ./libsoft_sign.so
 */
#include "armet_operators.h"

#include <math.h>

/* One result, of the type of the one input. */
static int32_t infer(void *user, armet_call *call) {
    (void)user;
    if (call->input_count != 1 || !call->inputs[0] || call->output_count != 1)
        return armet_fail(call, "it has one input and one result");
    const armet_tensor *x = call->inputs[0];
    armet_tensor *y = call->outputs[0];
    if (x->element != ARMET_FLOAT32) return armet_fail(call, "the input must be of float32");
    if (x->rank > ARMET_MAX_RANK) return armet_fail(call, "the input has too many dimensions");
    y->element = x->element;
    y->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) y->dims[i] = x->dims[i]; /* names are copied as they are */
    return ARMET_OK;
}

static int32_t run(void *user, armet_call *call) {
    (void)user;
    const armet_attribute *given = armet_find(call, "alpha");
    const float alpha = given && given->kind == ARMET_ATTRIBUTE_FLOAT ? given->floats[0] : 1.0f;
    const float *x = call->inputs[0]->data;
    float *y = call->outputs[0]->data;
    for (size_t i = 0; i < call->outputs[0]->bytes / sizeof(float); i++) y[i] = x[i] / (alpha + fabsf(x[i]));
    return ARMET_OK;
}

static const armet_operator soft_sign = {
    .size = sizeof(armet_operator),
    .domain = "example",
    .name = "SoftSign",
    .first_opset = 1,
    .last_opset = INT64_MAX,
    .infer = infer,
    .run = run,
};

static const armet_operator *const operators[] = {&soft_sign};

static const armet_library library = {
    .size = sizeof(armet_library),
    .abi = ARMET_OPERATORS_ABI,
    .name = "soft sign",
    .operators = operators,
    .operator_count = 1,
};

const armet_library *armet_operators(uint32_t abi) {
    (void)abi;
    return &library;
}
