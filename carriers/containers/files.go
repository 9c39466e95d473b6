package containers

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/program"
)

// containerFile is a file to write into a container.
type containerFile struct {
	path    string
	content []byte
}

// writeFiles writes files into a container before its start. It creates missing folders.
func (s *Service) writeFiles(ctx context.Context, name string, files []containerFile) error {
	if len(files) == 0 {
		return nil
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path.Clean(f.path),
			"/"), Mode: 0o644, Size: int64(len(f.content))}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("the file %s: %w", f.path, err)
		}
		_, _ = w.Write(f.content) // in memory, so it cannot fail
	}
	_ = w.Close()
	_, err := s.client.CopyToContainer(ctx, name, client.CopyToContainerOptions{DestinationPath: "/", Content: &b})
	if err != nil {
		return fmt.Errorf("its input could not be written into the container: %w", err)
	}
	return nil
}

// errBroken means that the container host stopped while sending a file. The file may be read again.
var errBroken = errors.New("it could not be read to its end")

// errNoFile means that the output file does not exist or is not a regular file.
var errNoFile = errors.New("is not there")

// readOutput reads the output file of a container, as JSON if valid, else as text.
func (s *Service) readOutput(ctx context.Context, name, path string) (json.RawMessage, error) {
	content, err := s.readFile(ctx, name, path)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(content)
	switch {
	case len(content) > s.maxOutput():
		return nil, program.ErrTooLarge(s.maxOutput())
	case json.Valid(text) && utf8.Valid(text):
		return text, nil
	case !utf8.Valid(content):
		return nil, fmt.Errorf("the file %s with its output is neither JSON nor a text", path)
	}
	return expr.Quote(strings.TrimSuffix(string(content), "\n")), nil
}

// readFile reads a file of a container, at most one byte more than the output limit.
func (s *Service) readFile(ctx context.Context, name, path string) ([]byte, error) {
	copied, err := s.client.CopyFromContainer(ctx, name, client.CopyFromContainerOptions{SourcePath: path})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, fmt.Errorf("the file %s with its output %w", path, errNoFile)
	case err != nil:
		return nil, err
	}
	defer copied.Content.Close()
	r := tar.NewReader(copied.Content)
	switch header, err := r.Next(); {
	case err != nil:
		return nil, fmt.Errorf("the file %s: %w: %w", path, errBroken, err)
	case header.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("the file %s with its output %w: that is no plain file", path, errNoFile)
	}
	content, err := io.ReadAll(io.LimitReader(r, int64(s.maxOutput())+1))
	if err != nil {
		return nil, fmt.Errorf("the file %s: %w: %w", path, errBroken, err)
	}
	return content, nil
}

func (s *Service) maxOutput() int {
	if s.opts.MaxOutput > 0 {
		return s.opts.MaxOutput
	}
	return defaultMaxOutput
}

const defaultMaxOutput = 1 << 20
