//! A map whose values are made on first use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use crate::Error;

/// A value for each key, made once even if several threads ask for it.
pub(crate) struct OnceMap<K, V> {
    values: Mutex<HashMap<K, V>>,
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self { values: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// The value of a key. If there is none, `make` makes it, and other threads wait. After an error, the next call
    /// tries again.
    pub(crate) fn get(&self, key: K, make: impl FnOnce() -> Result<V, Error>) -> Result<V, Error> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get(&key) {
            return Ok(value.clone());
        }
        let value = make()?;
        values.insert(key, value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_that_ask_at_once_get_one_value() {
        let (map, calls, barrier) = (OnceMap::default(), AtomicU32::new(0), Barrier::new(8));
        let ask = || {
            barrier.wait();
            map.get("sum", || {
                // Long enough for the other threads to ask for the value meanwhile.
                thread::sleep(Duration::from_millis(20));
                Ok(calls.fetch_add(1, Ordering::SeqCst))
            })
        };
        thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().for_each(|one| assert_eq!(one.join().unwrap().unwrap(), 0));
        });
        assert_eq!(calls.into_inner(), 1);
    }

    #[test]
    fn an_error_is_not_kept() {
        let map = OnceMap::default();
        assert!(map.get("sum", || Err(Error::Recording { operation: "load" })).is_err());
        assert_eq!(map.get("sum", || Ok(1)).unwrap(), 1);
        assert_eq!(map.get("sum", || Ok(2)).unwrap(), 1);
        assert_eq!(map.get("max", || Ok(3)).unwrap(), 3);
    }
}
