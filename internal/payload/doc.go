// Package payload stores large values in a bucket. A small reference replaces the value in states,
// journals and messages between members. The reference names the object and holds the size and the
// SHA-256 of the value.
//
// Promises:
//   - An object is written before anything that refers to it is stored, so stored data never refers
//     to a missing object. For the values of a decision the reference exists first; the component
//     that stores the decision writes the object beforehand (made.go).
//   - Users cannot forge references, because a reference holds a word derived from the store's
//     secret.
//   - A value read as a whole is compared with its hash before it is returned.
//   - An object is written once, under a unique name, and never changed. So an old object without
//     stored references will never be referred to again.
//
// A bucket location belongs to one store and records that in an object (place.go). So no store
// mistakes an empty location for its own, and none sweeps the values of another store.
//
// The objects of a task are in a folder of its own. Another task that shares part of its history
// refers to the same objects. Before a task is deleted, package persistence checks whether other
// tasks hold its objects.
package payload
