// Package containers tests containers in the way users run them: with the built binary, a private
// container host (podman with runc, as root or as another user), real containers, and members that
// are really killed. It needs a machine with podman, runc and a static busybox, so its tests are
// not part of the suite. Command "make containers" installs what is missing, if it may, and runs
// them.
//
// The container host is private and temporary: its storage, images and socket are in one new
// folder. No image is downloaded; the tests use an image made of busybox. If no container can run,
// the tests fail with the error of the host.
package containers
