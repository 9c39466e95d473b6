// Package attached has the sessions of workers that attach to this member, and hands jobs to them.
//
// Promises: a session never has more jobs than its worker gave credits for, counting each until the
// worker has answered for it; a job goes to the session with the most free credits of those that
// offer its service and have its labels, else to a member that has told of free credits, and waits
// in line only while one of them may come to it; a job of a service that nobody offers fails at
// once; a session whose stream breaks waits for its worker for the grace, and then its jobs are
// lost to it and carried out by others; a worker that comes back in time goes on where it was: what
// it finished meanwhile counts, what never reached it is sent, and nothing runs twice; a worker
// that does not read holds up nobody else; how many sessions there are is bounded.
package attached
