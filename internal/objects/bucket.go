package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Bucket stores objects by key. Keys are paths with slashes. A write that has returned is visible
// to every later read.
type Bucket interface {
	// Get returns the content of an object, or its first most+1 bytes if it is longer than most. It
	// returns fs.ErrNotExist if there is no such object and fs.ErrPermission if the object may not
	// be read.
	Get(ctx context.Context, key string, most int) ([]byte, error)
	// Range returns up to most bytes of an object, starting at offset from. It returns fewer bytes
	// if the object ends earlier.
	Range(ctx context.Context, key string, from int64, most int) ([]byte, error)
	// Put writes a whole object and replaces an existing one.
	Put(ctx context.Context, key string, value []byte) error
	// Create writes an object that does not exist yet. It returns fs.ErrExist, and changes nothing,
	// if the object exists.
	Create(ctx context.Context, key string, value []byte) error
	// List returns the objects below a prefix that ends with a slash.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete deletes all objects below a prefix that ends with a slash. Deleting nothing is no
	// error.
	Delete(ctx context.Context, prefix string) error
	// Remove deletes an object. A missing object is no error.
	Remove(ctx context.Context, key string) error
	// Folders returns the names of the folders directly below a prefix that ends with a slash. Some
	// of them may be empty.
	Folders(ctx context.Context, prefix string) ([]string, error)
	// Address returns the address of an object for workers: a path or a URL.
	Address(key string) string
}

// Object is an entry of a list.
type Object struct {
	Key     string
	Version string // changes with every write; "" if unknown, so that the object has to be read
	Written time.Time
}

// Opener opens the bucket that a URL names.
type Opener func(ctx context.Context, at *url.URL) (Bucket, error)

// Open opens a bucket by its URL. The functions in others open buckets of schemes other than file.
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
		return nil, fmt.Errorf("the object store %q: %s: URLs are not in this binary: use "+
			"troupe-cloud, or file:///FOLDER", Shown(text), u.Scheme)
	default:
		return nil, fmt.Errorf("the object store %q: nobody here knows %s: URLs; use file:///FOLDER", Shown(text), u.Scheme)
	}
	path, err := pathOf(u)
	if err != nil {
		return nil, fmt.Errorf("the object store %q: %w", Shown(text), err)
	}
	return OpenDir(path)
}

// Shown returns a URL without its secret parts.
func Shown(text string) string {
	if u, err := url.Parse(text); err == nil {
		u.RawQuery, u.User = "", nil
		return u.String()
	}
	return "…"
}

// pathOf returns the path of a file URL.
func pathOf(u *url.URL) (string, error) {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return "", errors.New("files of other hosts cannot be reached so: write file:///FOLDER, with three slashes")
	case u.Path == "" || u.Path == "/" || u.Opaque != "":
		return "", errors.New("it names no folder: write file:///FOLDER, with three slashes")
	}
	if path := strings.TrimPrefix(u.Path, "/"); len(path) > 1 && path[1] == ':' { // C:/… on Windows
		return path, nil
	}
	return u.Path, nil
}
