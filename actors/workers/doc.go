// Package workers knows the registered workers and carries jobs to those that are HTTP servers.
//
// Promises: a registration is stored before it is answered, and survives a restart with its last
// sign of life; a worker that could not be heard because no member was there is tried all the same
// after a start; a job that asks for labels goes to nobody who lacks one of them; a worker that
// takes several jobs with one request gets those together that are called together, and no slow one
// keeps the answer of another; heartbeats count at once, on other members as soon as they hear of
// them, for which nobody waits, and are written in groups; no address outside of loopback and the
// networks that the operator allowed is ever called, whatever a worker's URL says or its name
// resolves to; redirects and proxies are not followed; answers are bounded; how many workers are
// remembered is bounded too.
package workers
