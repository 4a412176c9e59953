//! Simulations: lb's machines in virtual time, over many seeds.
//!
//! `LB_SIM_SEED=n` runs one seed, `LB_SIM_SEEDS=n` that many (256).

#![cfg(test)]

mod closed_loop;
mod compare;
mod fleet;
mod seeds;
