// Package containerhost starts container hosts of tests' own: podman with runc, as root or as
// anybody else, in a folder that is theirs alone.
//
// Promises: nothing is fetched: the one image is made of this machine's busybox; what is missing is
// said; nothing of it is left once it is stopped.
package containerhost
