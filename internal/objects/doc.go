// Package objects is the protocol by which a remote worker carries out an attempt using only files.
// The attempt has a folder of its own: spec.json describes the work, status.json the progress and
// output.json the result. The files are objects of a Bucket. Dir is a bucket in a folder of this
// host.
//
// Promises:
//   - Objects are written as a whole, so no reader sees a half-written object.
//   - A malformed status, or the status of another attempt, changes nothing.
//   - The silence of a worker is measured by the reader's clock, from when the reader last saw the
//     heartbeat change.
//   - The number of bytes read is bounded.
package objects
