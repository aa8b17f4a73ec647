//! Backend traits, placement, memory planner, plan and executor.
