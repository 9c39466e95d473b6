// Package hook decides what a delivery from outside comes to: whether it is signed, when it counts
// as the same as another one, and which task it starts, or signals, with what.
//
// Promises: what a delivery says is looked at after its signature alone; a signature is compared in
// a time that tells nothing about the right one; two deliveries have one id only when whoever has
// the secret has signed both for that; every expression of a hook was compiled when the hook was
// set, and all those of a delivery together have one budget. Equal deliveries come to equal acts.
package hook
