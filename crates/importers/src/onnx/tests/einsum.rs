//! Einsum against its definition, by running over all indices of an equation.

use std::collections::BTreeMap;

use armet_tensor::Tensor;

use super::*;

/// The sum of products over all values of all letters.
fn direct(terms: &[&str], wanted: &str, operands: &[Tensor]) -> Tensor {
    let mut lengths: BTreeMap<char, usize> = BTreeMap::new();
    for (term, operand) in terms.iter().zip(operands) {
        lengths.extend(term.chars().zip(operand.shape().iter().copied()));
    }
    let letters: Vec<char> = lengths.keys().copied().collect();
    let shape: Vec<usize> = wanted.chars().map(|letter| lengths[&letter]).collect();
    let mut sums = vec![0f32; shape.iter().product()];
    let count: usize = lengths.values().product();
    for number in 0..count {
        let mut rest = number;
        let at: BTreeMap<char, usize> = letters
            .iter()
            .map(|letter| {
                let index = rest % lengths[letter];
                rest /= lengths[letter];
                (*letter, index)
            })
            .collect();
        let place = |term: &str| term.chars().fold(0, |place, letter| place * lengths[&letter] + at[&letter]);
        let product: f32 =
            terms.iter().zip(operands).map(|(term, operand)| operand.expect::<f32>()[place(term)]).product();
        sums[place(wanted)] += product;
    }
    Tensor::new(shape, &sums).unwrap()
}

#[test]
fn equations_are_sums_of_products() {
    let equations = [
        "ij,jk->ik",
        "bhid,bhjd->bhij",
        "bqhd,bkhd->bhqk",
        // Projections of attention: several indices are summed, or left over.
        "btd,dnh->btnh",
        "btnh,nhd->btd",
        "abcd,cde->eba",
        "abc,abc->",
        "abcd,dcb->a",
        "ab,cd->acbd",
        "ab,b->a",
        "ab,bc,cd->ad",
        "abc,cd,bde->ae",
        "ab->ba",
        "abc->b",
    ];
    let lengths: BTreeMap<char, usize> =
        "abcdehijknqt".chars().zip([2, 3, 4, 2, 3, 2, 3, 2, 4, 3, 2, 3]).collect();
    for equation in equations {
        let (left, wanted) = equation.split_once("->").unwrap();
        let terms: Vec<&str> = left.split(',').collect();
        let operands: Vec<Tensor> = terms
            .iter()
            .enumerate()
            .map(|(i, term)| {
                let shape: Vec<usize> = term.chars().map(|letter| lengths[&letter]).collect();
                let count: usize = shape.iter().product();
                let values: Vec<f32> = (0..count).map(|k| ((k * 7 + i * 3) % 11) as f32 - 5.0).collect();
                Tensor::new(shape, &values).unwrap()
            })
            .collect();
        let names: Vec<String> = (0..operands.len()).map(|i| format!("x{i}")).collect();
        let infos = names.iter().zip(&operands).map(|(name, tensor)| {
            let named = |axis| DimensionProto { dim_value: None, dim_param: Some(format!("{name}_{axis}")) };
            info(name, ElementType::F32, (0..tensor.shape().len()).map(named).collect())
        });
        let infos = infos.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let main = node("Einsum", &names, &["y"], vec![word("equation", equation)]);
        let imported = try_import(&model(13, graph(infos, vec![main], &["y"]))).unwrap();
        let found = evaluate(&imported.graph, &operands);
        assert_close(equation, &found[0], &direct(&terms, wanted, &operands));
    }
}
