// Package external polls external work that needs no library: jobs with a status URL, and workers
// that report through the files of an object store (package objects), whichever component started
// them.
//
// It calls only networks that the operator allowed, also after a redirect, and follows no redirect
// to another host. Secret values of headers are read when they are sent, and appear in no event,
// answer or log. If a server cannot be reached or its answer makes no sense, it is polled again,
// for a bounded time.
package external
