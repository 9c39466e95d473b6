// Package external polls external work of two kinds: jobs with a status URL, and workers that
// report through the files of an object store (package objects).
//
// It calls only networks that the operator allowed, and follows no redirect to another host. It
// reads secret header values when they are sent; they appear in no event, answer or log. If a
// server is unreachable or its answer is invalid, it polls again, for a bounded time.
package external
