/* Custom operators for Armet: the interface between the engine and a shared library.
 *
 * A library exports one function, armet_operators(). The engine calls it once when it loads the library, and gets a list of
 * operators with two callbacks each: `infer` says of which types the results are, `run` computes them.
 *
 *     cc -shared -fPIC -O2 -I<folder of this file> -o libmine.so mine.c
 *     armet run model.onnx --operators ./libmine.so
 *
 * Rules.
 * - All that the engine hands to a callback belongs to the engine and is valid until the callback returns. All that the
 *   library hands to the engine (armet_library and what it points to) must stay valid and unchanged while the process
 *   lives: the engine never unloads a library.
 * - Callbacks are called from several threads at the same time. They must not let exceptions or longjmp out.
 * - Every struct begins with `size`, the number of bytes that its maker knows. Structs grow only at their end: a field at
 *   or behind `size` is not there. ARMET_HAS(p, field) asks.
 * - ARMET_OPERATORS_ABI changes only when that does not suffice; a library of another number is refused.
 * - Tensors lie in row-major order without gaps, aligned to 64 bytes on the way in and out. bool is one byte; elements of
 *   4 and 2 bits are packed, the first in the lowest bits; text is not handed over.
 */
#ifndef ARMET_OPERATORS_H
#define ARMET_OPERATORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define ARMET_OPERATORS_ABI 1u
/* Most dimensions of a result. */
#define ARMET_MAX_RANK 8
/* Whether a struct that the other side made has a field. */
#define ARMET_HAS(p, field) (offsetof(__typeof__(*(p)), field) + sizeof((p)->field) <= (p)->size)

/* Element types, by ONNX's numbers (TensorProto.DataType). */
enum {
    ARMET_FLOAT32 = 1,
    ARMET_UINT8 = 2,
    ARMET_INT8 = 3,
    ARMET_UINT16 = 4,
    ARMET_INT16 = 5,
    ARMET_INT32 = 6,
    ARMET_INT64 = 7,
    ARMET_BOOL = 9,
    ARMET_FLOAT16 = 10,
    ARMET_FLOAT64 = 11,
    ARMET_UINT32 = 12,
    ARMET_UINT64 = 13,
    ARMET_BFLOAT16 = 16
};

/* What a callback returns. All other numbers are errors too. */
enum {
    ARMET_OK = 0,
    /* Something is wrong; say what in armet_call.message. */
    ARMET_FAILED = 1,
    /* infer only: dimensions that are not known yet decide; ask again when they are numbers. */
    ARMET_NEEDS_SHAPE = 2,
    /* infer only: the contents of input armet_call.needed decide; ask again when they are there. */
    ARMET_NEEDS_VALUE = 3
};

/* A tensor. */
typedef struct armet_tensor {
    size_t size;
    int32_t element; /* ARMET_FLOAT32 ... */
    int32_t rank;
    /* `rank` lengths. In infer a negative one is a length that is not known yet; equal negative numbers are equal
     * lengths, and may be copied to results. For results of infer there is room for ARMET_MAX_RANK. */
    int64_t *dims;
    /* The elements; null in infer where they are not known. */
    void *data;
    size_t bytes;
} armet_tensor;

/* Kinds of attributes. */
enum {
    ARMET_ATTRIBUTE_INT = 1,    /* one of `ints` */
    ARMET_ATTRIBUTE_FLOAT = 2,  /* one of `floats` */
    ARMET_ATTRIBUTE_TEXT = 3,   /* `text`, which ends with a zero byte */
    ARMET_ATTRIBUTE_INTS = 4,   /* `count` of `ints` */
    ARMET_ATTRIBUTE_FLOATS = 5, /* `count` of `floats` */
    ARMET_ATTRIBUTE_TENSOR = 6  /* `tensor` */
};

/* An attribute as the model gives it. */
typedef struct armet_attribute {
    size_t size;
    const char *name;
    int32_t kind;
    size_t count;
    const int64_t *ints;
    const float *floats;
    const char *text;
    const armet_tensor *tensor;
} armet_attribute;

/* One call of a callback. */
typedef struct armet_call {
    size_t size;
    const char *domain;
    const char *name;
    int64_t opset; /* the version of the operator set that the model names */
    const armet_attribute *const *attributes;
    size_t attribute_count;
    /* A null entry is an input that the node leaves out. Inputs must not be written. */
    const armet_tensor *const *inputs;
    size_t input_count;
    /* infer fills element, rank and dims; run finds them filled, and fills data. */
    armet_tensor *const *outputs;
    size_t output_count;
    /* Room for an error's text, which ends with a zero byte. */
    char *message;
    size_t message_size;
    /* With ARMET_NEEDS_VALUE: the input. */
    size_t needed;
} armet_call;

/* Results may hold NaN though no input does. Without it the engine takes NaN for an error and names the operator. */
#define ARMET_MAY_GIVE_NAN 1u

/* An operator. */
typedef struct armet_operator {
    size_t size;
    const char *domain; /* "" for ONNX's own */
    const char *name;
    int64_t first_opset; /* the versions of the operator set that it is right for */
    int64_t last_opset;  /* INT64_MAX: all that come */
    uint32_t flags;
    int32_t (*infer)(void *user, armet_call *call);
    int32_t (*run)(void *user, armet_call *call);
    void *user; /* given to both callbacks */
} armet_operator;

/* What a library holds. The places of `size` and `abi` are the same in all versions. */
typedef struct armet_library {
    size_t size;
    uint32_t abi; /* ARMET_OPERATORS_ABI of the header that it was compiled with */
    const char *name;
    const armet_operator *const *operators;
    size_t operator_count;
} armet_library;

/* The function that a library exports. `abi` is the engine's version: a library that serves several chooses by it, all
 * others return their own list. Null says that there is nothing for this version. */
const armet_library *armet_operators(uint32_t abi);

/* An attribute by name, or null. */
static inline const armet_attribute *armet_find(const armet_call *call, const char *name) {
    for (size_t i = 0; i < call->attribute_count; i++) {
        const char *a = call->attributes[i]->name, *b = name;
        while (*a && *a == *b) {
            a++;
            b++;
        }
        if (*a == *b) return call->attributes[i];
    }
    return NULL;
}

/* Notes an error's text; returns ARMET_FAILED. */
static inline int32_t armet_fail(armet_call *call, const char *text) {
    size_t i = 0;
    for (; text[i] && i + 1 < call->message_size; i++) call->message[i] = text[i];
    if (call->message_size) call->message[i] = 0;
    return ARMET_FAILED;
}

#ifdef __cplusplus
}
#endif

#endif
