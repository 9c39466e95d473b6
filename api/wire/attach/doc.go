// Package attach is the protocol between attached workers and members. It is defined in
// attach.proto; the other files are generated.
package attach

//go:generate go run ../../../internal/tools/protogen -C ../../.. api/wire/attach/attach.proto
