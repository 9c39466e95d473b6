// Package containers carries out jobs of type container: programs in images on a container host,
// such as Docker, Podman, or any other that implements their API. It guarantees:
//
//   - Nothing runs unless the operator of the member allowed it.
//   - A container sees nothing of the member's host except the folder for programs, in its state
//     directly before the start. A process that can write to that folder at that moment can still
//     place a link there.
//   - The external work that a program names reaches no container except that of its own attempt.
//   - The name of a container is derived from its attempt, so an attempt has only one. A repeated
//     start takes over the existing container, on this member or on another one with the same host.
//   - A member without a lease creates and starts none. This is checked right before each request.
//     Only the time until the request is sent remains.
//   - No member is needed for a container to continue. It is external work, which the owner of its
//     task polls.
//   - Its output is the log of its attempt, complete and each line once, also if another member
//     continues to read it.
//   - A container is removed after its end is stored. Remaining ones, left over after crashes, are
//     found by label and removed.
package containers
