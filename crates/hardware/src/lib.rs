//! What this board is: CPU features, clusters, caches, memory, thermal zones.
