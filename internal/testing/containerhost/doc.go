// Package containerhost starts private container hosts for tests: podman with runc, as root or as
// another user, in a folder of their own.
//
// Promises: nothing is downloaded, because the only image is made of this machine's busybox.
// Missing programs are named in the error. Nothing remains after Stop.
package containerhost
