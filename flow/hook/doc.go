// Package hook decides about deliveries from outside: whether a delivery is signed, whether it
// repeats an earlier one, and which task it starts or signals with which values.
//
// Promises: a delivery is read only after its signature was verified. A signature is compared in
// constant time. Two deliveries have the same id only if an owner of the secret signed both with
// it. All expressions of a hook are compiled when the hook is set, and share one budget per
// delivery. Equal deliveries have equal effects.
package hook
