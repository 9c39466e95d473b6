// Package attach has the protocol between attached workers and members. attach.proto describes it;
// all else is generated.
package attach

//go:generate go run ../../../internal/protogen -C ../../.. api/wire/attach/attach.proto
