// Package payload keeps large values in a bucket. A reference stands in their place, which is small
// and travels wherever the value would have: through states, journals and between members. It says
// which object has the value, how many bytes that has and what their SHA-256 is.
//
// Promises: an object is written before anything is stored that refers to it, so nothing that is
// stored refers to what may get lost; of what a decision makes the reference is there first, and
// whoever is about to store that writes the object (made.go); no user can write one, because it
// holds a word that follows from the store's secret; what is read as a whole is compared with its
// hash before anybody gets it; an object is written once, under a name of its own, and never
// changed; so one that is old, and that nothing stored refers to, nobody will ever refer to.
//
// A place is of one store, and says so in an object (place.go): nobody takes an empty place for
// that of his store, or sweeps the values of another one.
//
// The objects of a task are in a folder of its own. Another task that has part of its history
// refers to the same ones; who deletes a task asks whether others hold its objects (package
// persistence keeps that).
package payload
