//! Requests in parallel: equal results, bounded, cancelled while they wait and while they run, ended by choice.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod models;
#[expect(dead_code, reason = "other tests build models with more of it")]
mod onnx;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use armet::{
    CancelToken, CompileSettings, Compiled, Ending, Engine, NoProbe, Queue, QueueError, QueueSettings,
    Request, RequestError, RequestState, RunError, RunLimits, SubmitError, Tensor,
};

const LONG: Duration = Duration::from_secs(120);

fn compiled(name: &str) -> Compiled {
    let engine = Engine::builder().threads(2).build().unwrap();
    engine.compile(&models::load(name), &CompileSettings::default()).unwrap()
}

/// A model that takes as long as its sequence.
fn recurrence() -> Compiled {
    let engine = Engine::builder().threads(1).build().unwrap();
    engine.compile(&onnx::recurrence(), &CompileSettings::default()).unwrap()
}

/// A request that runs for minutes unless something ends it.
fn endless() -> Request {
    const ROWS: usize = 8_000_000;
    let (first, rows) = (Tensor::vector(&[0.5f32]), Tensor::new([ROWS, 1], &vec![0.25f32; ROWS]).unwrap());
    Request::default().input("first", first).input("rows", rows)
}

fn short() -> Request {
    let (first, rows) = (Tensor::vector(&[0.5f32]), Tensor::new([3, 1], &[0.25f32; 3]).unwrap());
    Request::default().input("first", first).input("rows", rows)
}

fn queue(compiled: &Compiled, workers: usize, capacity: usize) -> Queue {
    let settings = QueueSettings { workers: Some(workers), threads_per_worker: None, capacity };
    compiled.queue(&settings).unwrap()
}

/// Hands in a request and waits until a worker has it.
fn running(queue: &Queue, request: Request) -> armet::Ticket {
    let ticket = queue.submit(request).unwrap();
    let started = Instant::now();
    while ticket.state() == RequestState::Waiting {
        assert!(started.elapsed() < LONG);
        std::thread::yield_now();
    }
    ticket
}

#[test]
fn four_workers_give_what_one_session_gives_and_share_the_weights() {
    for (name, input, shape) in models::MODELS {
        let compiled = compiled(name);
        let given: Vec<Tensor> = (0..4).map(|seed| models::values(shape, seed)).collect();
        let mut alone = compiled.session();
        let expected: Vec<Vec<Tensor>> = given
            .iter()
            .map(|value| {
                let outputs = alone.run(&[(input, value.into())]).unwrap();
                outputs.iter().map(|(_, value)| value.view().unwrap().to_tensor()).collect()
            })
            .collect();
        let packed = compiled.packed_weights();
        let queue = queue(&compiled, 4, 64);
        let tickets: Vec<_> = (0..40)
            .map(|i| queue.submit(Request::default().input(input, given[i % 4].clone())).unwrap())
            .collect();
        for (i, ticket) in tickets.into_iter().enumerate() {
            let results = ticket.wait().unwrap();
            let found: Vec<&Tensor> = results.iter().map(|(_, value)| value.tensor().unwrap()).collect();
            assert_eq!(found, expected[i % 4].iter().collect::<Vec<_>>(), "{name}, request {i}");
        }
        assert_eq!(compiled.packed_weights(), packed, "{name}");
        let statistics = queue.shutdown(Ending::Finish);
        assert_eq!((statistics.done, statistics.waiting, statistics.running), (40, 0, 0));
    }
}

#[test]
fn a_full_queue_gives_the_request_back() {
    let queue = queue(&recurrence(), 1, 2);
    let first = running(&queue, endless());
    let waiting = [queue.submit(short()).unwrap(), queue.submit(short()).unwrap()];
    let Err(SubmitError::Full { capacity, request }) = queue.submit(short()) else { panic!("it is full") };
    assert_eq!((capacity, request.inputs.len()), (2, 2));
    let before = queue.statistics();
    assert_eq!((before.waiting, before.running, before.done), (2, 1, 0));
    // One that waits makes room at once, though the worker is busy.
    let [one, other] = waiting;
    one.cancel();
    assert_eq!(one.state(), RequestState::Ended);
    assert!(one.wait().unwrap_err().is_cancelled());
    let last = queue.submit(*request).unwrap();
    first.cancel();
    assert_eq!(first.wait(), Err(RequestError::Run(RunError::Cancelled)));
    assert!(other.wait().is_ok() && last.wait().is_ok());
    let after = queue.statistics();
    assert_eq!((after.waiting, after.running, after.done, after.cancelled, after.failed), (0, 0, 2, 2, 0));
}

#[test]
fn dropping_a_ticket_cancels_and_detaching_does_not() {
    let queue = queue(&recurrence(), 1, 4);
    drop(running(&queue, endless()));
    queue.submit(short()).unwrap().detach();
    let statistics = queue.shutdown(Ending::Finish);
    assert_eq!((statistics.done, statistics.cancelled), (1, 1));
    assert!(matches!(queue.submit(short()), Err(SubmitError::Ended { .. })));
}

#[test]
fn shutting_down_finishes_or_cancels() {
    let compiled = recurrence();
    let finishing = queue(&compiled, 2, 32);
    let tickets: Vec<_> = (0..20).map(|_| finishing.submit(short()).unwrap()).collect();
    assert_eq!(finishing.shutdown(Ending::Finish).done, 20);
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    let cancelling = queue(&compiled, 1, 32);
    let mut tickets = vec![running(&cancelling, endless())];
    tickets.extend((0..5).map(|_| cancelling.submit(short()).unwrap()));
    // Dropping the queue while it runs is the same.
    drop(cancelling);
    for ticket in tickets {
        assert!(ticket.wait().unwrap_err().is_cancelled());
    }
}

#[test]
fn tickets_can_be_polled_and_waited_on_for_a_while() {
    let queue = queue(&recurrence(), 1, 4);
    let mut long = running(&queue, endless());
    assert!(long.poll_now().is_none());
    assert!(long.wait_timeout(Duration::from_millis(5)).is_none());
    long.cancel();
    assert!(long.wait_timeout(LONG).unwrap().unwrap_err().is_cancelled());
    assert_eq!(long.poll_now(), Some(Err(RequestError::Taken)));
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_ticket_is_a_future() {
    let queue = queue(&recurrence(), 1, 4);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut ticket = pin!(queue.submit(short()).unwrap());
    let results = loop {
        match ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome.unwrap(),
            Poll::Pending => std::thread::park_timeout(LONG),
        }
    };
    assert_eq!(results.tensor("all").unwrap().shape().dims(), [3, 1]);
}

#[test]
fn errors_of_a_request_are_its_own() {
    let queue = queue(&recurrence(), 1, 4);
    let wrong = queue.submit(Request::default().input("first", Tensor::vector(&[1.0f32]))).unwrap();
    assert!(matches!(wrong.wait(), Err(RequestError::Run(RunError::MissingInput(_)))));
    let late = queue.submit(endless().deadline(Instant::now() + Duration::from_millis(50))).unwrap();
    assert_eq!(late.wait(), Err(RequestError::Run(RunError::DeadlinePassed)));
    assert!(queue.submit(short()).unwrap().wait().is_ok());
    assert_eq!((queue.statistics().failed, queue.statistics().done), (2, 1));
    let none = QueueSettings { capacity: 0, ..Default::default() };
    assert!(matches!(recurrence().queue(&none), Err(QueueError::Setting { given: 0, .. })));
}

#[test]
fn a_session_ends_at_its_limits_and_can_be_used_again() {
    let compiled = recurrence();
    let mut session = compiled.session();
    let long = endless();
    let given = |request: &Request| request.inputs.clone();
    let mut run = |inputs: Vec<(String, armet::Value)>, limits: &RunLimits| {
        let inputs: Vec<_> = inputs.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
        session.run_limited(&inputs, limits, &mut NoProbe).map(|outputs| outputs.len())
    };
    let token = CancelToken::new();
    let limits = RunLimits { token: Some(token.clone()), deadline: None };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            token.cancel();
        });
        assert_eq!(run(given(&long), &limits), Err(RunError::Cancelled));
    });
    assert_eq!(run(given(&long), &limits), Err(RunError::Cancelled), "a token stays set");
    let soon = RunLimits { token: None, deadline: Some(Instant::now() + Duration::from_millis(20)) };
    assert_eq!(run(given(&long), &soon), Err(RunError::DeadlinePassed));
    assert!(run(given(&short()), &RunLimits::default()).is_ok());
}
