//! The front door: whom an open repository trusts.

mod trust;
