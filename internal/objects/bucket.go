package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Bucket keeps objects by their keys, which are paths with slashes. What it says is there,
// everybody who asks afterwards sees.
type Bucket interface {
	// Get gives an object; of one with more than most bytes it gives the first most+1.
	// fs.ErrNotExist = there is none, fs.ErrPermission = it is there and this one may not be read.
	Get(ctx context.Context, key string, most int) ([]byte, error)
	// Range gives some bytes of an object, from one of them on: fewer where it ends before.
	Range(ctx context.Context, key string, from int64, most int) ([]byte, error)
	// Put writes an object as a whole, in place of the one that is there.
	Put(ctx context.Context, key string, value []byte) error
	// Create writes one that is not there yet. fs.ErrExist = it is, and stays as it is.
	Create(ctx context.Context, key string, value []byte) error
	// List tells what is below a prefix that ends with a slash.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete deletes everything below a prefix that ends with a slash. That nothing is there is no
	// error.
	Delete(ctx context.Context, prefix string) error
	// Remove deletes one object. That it is not there is no error.
	Remove(ctx context.Context, key string) error
	// Folders are the names of those right below a prefix that ends with a slash, of which there
	// may be some that nothing is in.
	Folders(ctx context.Context, prefix string) ([]string, error)
	// Address is what a worker is told of an object: a path, or a URL.
	Address(key string) string
}

// Object is one of a list.
type Object struct {
	Key     string
	Version string // another one with every write; "" = that is not known, it has to be read
	Written time.Time
}

// Opener opens the bucket that a URL names.
type Opener func(ctx context.Context, at *url.URL) (Bucket, error)

// Open opens a bucket by its URL. Those of schemes other than file are opened by others.
func Open(ctx context.Context, text string, others map[string]Opener) (Bucket, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("the object store %q is no URL such as file:///var/lib/troupe/objects", Shown(text))
	}
	if open := others[u.Scheme]; open != nil {
		return open(ctx, u)
	}
	switch u.Scheme {
	case "file":
	case "gs", "s3", "azblob":
		return nil, fmt.Errorf("the object store %q: %s: URLs are not in this binary: use troupe-cloud, or file:///FOLDER", Shown(text), u.Scheme)
	default:
		return nil, fmt.Errorf("the object store %q: nobody here knows %s: URLs; use file:///FOLDER", Shown(text), u.Scheme)
	}
	path, err := pathOf(u)
	if err != nil {
		return nil, fmt.Errorf("the object store %q: %w", Shown(text), err)
	}
	return OpenDir(path)
}

// Shown is a URL without what is secret in it.
func Shown(text string) string {
	if u, err := url.Parse(text); err == nil {
		u.RawQuery, u.User = "", nil
		return u.String()
	}
	return "…"
}

// pathOf is the path that a URL of files names.
func pathOf(u *url.URL) (string, error) {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return "", errors.New("files of other hosts cannot be reached so: write file:///FOLDER, with three slashes")
	case u.Path == "" || u.Path == "/" || u.Opaque != "":
		return "", errors.New("it names no folder: write file:///FOLDER, with three slashes")
	}
	if path := strings.TrimPrefix(u.Path, "/"); len(path) > 1 && path[1] == ':' { // C:/… of Windows
		return path, nil
	}
	return u.Path, nil
}
