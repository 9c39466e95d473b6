// Package objects is the protocol by which a worker anywhere carries out an attempt by nothing but
// files: what it has to do is in spec.json, how it is in status.json, and what came of it in
// output.json, all in a folder of this attempt alone. The files are objects of a Bucket; Dir is one
// in a folder of this host.
//
// Promises: objects are written as a whole, so nobody reads a half of one; a status that makes no
// sense, or is of another attempt, changes nothing; how long a worker is silent is told by the
// clock of who looks, from when its heartbeat was last seen to change; what is read is bounded.
package objects
