//! Packed weights: made once for a model, shared by every plan and session.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use armet_tensor::Tensor;

use crate::CompileError;

type Key = ((usize, usize), String);
type Entry = (Tensor, Arc<dyn Any + Send + Sync>);

/// A cache of what backends made of constant tensors.
///
/// A pack lives as long as a plan uses it or its tensor is there outside of this cache: tensors that were folded for one
/// shape only are gone with the plan for that shape, and so are their packs.
#[derive(Default)]
pub struct PackCache {
    entries: Mutex<HashMap<Key, Entry>>,
}

impl PackCache {
    /// What `make` gives for this tensor and `form`, made on the first call only.
    ///
    /// `form` names everything that the result depends on besides the tensor's bytes.
    ///
    /// # Errors
    /// Those of `make`, and [`CompileError::OutOfMemory`].
    pub fn get<T: Any + Send + Sync>(
        &self,
        tensor: &Tensor,
        form: &str,
        make: impl FnOnce() -> Result<T, CompileError>,
    ) -> Result<Arc<T>, CompileError> {
        let key = (tensor.identity(), form.to_owned());
        let found = self.lock().get(&key).map(|(_, pack)| Arc::clone(pack));
        if let Some(pack) = found.and_then(|pack| pack.downcast::<T>().ok()) {
            return Ok(pack);
        }
        // Kernels allocate without asking: where there is clearly no room, that would end the process.
        let bytes = tensor.bytes().len();
        if Vec::<u8>::new().try_reserve_exact(bytes.saturating_add(bytes / 4)).is_err() {
            return Err(CompileError::OutOfMemory { what: "packed weights".to_owned(), bytes });
        }
        let pack = Arc::new(make()?);
        let mut entries = self.lock();
        entries.retain(|_, (tensor, pack)| tensor.is_shared() || Arc::strong_count(pack) > 1);
        // The tensor is kept so that its address stays its own.
        entries.insert(key, (tensor.clone(), Arc::clone(&pack) as Arc<dyn Any + Send + Sync>));
        Ok(pack)
    }

    /// Number of packed tensors.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was packed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Entry>> {
        // A panic while packing leaves the map whole: entries are inserted complete.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PackCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackCache({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_packed_once_for_each_form() {
        let cache = PackCache::default();
        let tensor = Tensor::vector(&[1.0f32, 2.0]);
        let mut made = 0;
        for form in ["a", "b", "a"] {
            let pack = cache.get::<usize>(&tensor.clone(), form, || {
                made += 1;
                Ok(made)
            });
            assert_eq!(*pack.unwrap(), if form == "a" { 1 } else { 2 });
        }
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn packs_of_tensors_that_are_gone_go_too() {
        let cache = PackCache::default();
        let make = |cache: &PackCache, tensor: &Tensor| cache.get::<u8>(tensor, "x", || Ok(1)).unwrap();
        let kept = Tensor::vector(&[1.0f32]);
        drop(make(&cache, &kept));
        let used = make(&cache, &Tensor::vector(&[2.0f32]));
        drop(make(&cache, &Tensor::vector(&[3.0f32])));
        assert_eq!(cache.len(), 3);
        drop(make(&cache, &Tensor::vector(&[4.0f32])));
        assert_eq!(cache.len(), 3, "the third tensor is gone, and so is its pack");
        drop(used);
        drop(make(&cache, &Tensor::vector(&[5.0f32])));
        assert_eq!(cache.len(), 2, "the first and the last are left");
    }

    #[test]
    fn a_failure_is_not_kept() {
        let cache = PackCache::default();
        let tensor = Tensor::vector(&[1.0f32]);
        let error = CompileError::OutOfMemory { what: "x".to_owned(), bytes: 1 };
        assert_eq!(cache.get::<u8>(&tensor, "x", || Err(error.clone())).unwrap_err(), error);
        assert_eq!(cache.get::<u8>(&tensor, "x", || Ok(3)).map(|p| *p), Ok(3));
    }
}
