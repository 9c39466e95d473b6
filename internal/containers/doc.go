// Package containers checks containers as users have them: the built binary, a container host of
// its own (podman with runc, as root or as anybody else), real containers, members that are really
// killed. It is for machines that have podman, runc and a static busybox, so its tests are not
// among those of the suite: make containers installs what is missing, where it may, and runs them.
//
// Its container host is private and thrown away: store, images and socket are in one new folder. No
// image comes from outside; that of the checks is a busybox. Where no container can be run at all
// the tests fail, with the words of the host.
package containers
