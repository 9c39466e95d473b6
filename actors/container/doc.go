// Package container carries out jobs of type container: programs in images, which a container host
// runs, Docker, Podman or anything else that speaks their API.
//
// Promises: nothing is run unless the member's operator allowed it, and nothing sees more of the
// member's host than the folder that programs may run in, as it is directly before the container
// starts: whoever can write in that folder at that moment can still put a link there. What a
// program says it waits for reaches no container but the one of its own attempt. A container has a
// name that follows from its attempt, so there is never a second one for it: whoever is asked to
// begin it once more takes over the one that is there, on this member or another one that has the
// same container host. A member that lost its lease makes and starts none; that is asked directly
// before each request, and what is left is the moment until the request is sent. Nobody waits for a
// container on a member: it is work outside, and whoever has its task looks after it. What it
// prints is its attempt's log, from the first line and each line once, also when somebody else goes
// on looking. It is removed when its end is stored; what is left over, by whatever crash, is found
// by its label and removed.
package container
