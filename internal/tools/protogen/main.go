// Command protogen generates Go code for protocol files, beside each of them:
//
//	go run ./internal/tools/protogen api/wire/attach/attach.proto
//
// Paths are relative to the root of the repository, because every program with the generated code
// registers these names. It needs only the programs that go.mod lists as tools, so `go generate`
// works on a new machine.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are the code generators with their parameters. All files of a protocol are in one
// package.
var plugins = []struct{ tool, parameter string }{
	{"protoc-gen-go", "paths=source_relative"},
	{"protoc-gen-connect-go", "paths=source_relative,package_suffix"},
}

func main() {
	top := flag.String("C", ".", "the top of the repository")
	flag.Parse()
	err := os.Chdir(*top)
	if err == nil {
		err = generateFiles(context.Background(), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generateFiles(ctx context.Context, files []string) error {
	described, err := describeFiles(ctx, files)
	if err != nil {
		return err
	}
	for _, p := range plugins {
		request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: &p.parameter, ProtoFile: described}
		if err := runPlugin(ctx, p.tool, request); err != nil {
			return fmt.Errorf("%s: %w", p.tool, err)
		}
	}
	return nil
}

// describeFiles parses files with their comments, preceded by their imports.
func describeFiles(ctx context.Context, files []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range compiled {
		add(f)
	}
	return all, nil
}

// runPlugin runs a code generator.
func runPlugin(ctx context.Context, tool string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	plugin := exec.CommandContext(ctx, "go", "tool", tool)
	plugin.Stdin, plugin.Stderr = bytes.NewReader(in), os.Stderr
	out, err := plugin.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(f.GetName(), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
