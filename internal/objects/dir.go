package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Dir is a bucket in a folder of this host. Nothing outside of it is read or written, also where a
// worker has left a link.
type Dir struct{ path string }

// OpenDir opens one. A folder that is not there is made, for this user alone: whoever wants others
// to write into it makes it.
func OpenDir(folder string) (*Dir, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the object store: %w", err)
	}
	d := &Dir{folder}
	root, err := d.openRoot()
	if err != nil {
		return nil, err
	}
	return d, root.Close()
}

func (d *Dir) openRoot() (*os.Root, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil { // that it may not be read is no matter of an object
		return nil, fmt.Errorf("the folder of the object store: %v", err)
	}
	return root, nil
}

// withRoot does something in the folder.
func (d *Dir) withRoot(ctx context.Context, do func(*os.Root) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := d.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// Get reads a file. What else has that name, such as a link, is none, and neither is what is behind
// a link.
func (d *Dir) Get(ctx context.Context, key string, most int) (value []byte, err error) {
	err = d.readFile(ctx, key, func(file *os.File) error {
		value, err = io.ReadAll(io.LimitReader(file, int64(most)+1))
		return err
	})
	return value, err
}

// Range reads a part of one.
func (d *Dir) Range(ctx context.Context, key string, from int64, most int) (value []byte, err error) {
	err = d.readFile(ctx, key, func(file *os.File) error {
		value = make([]byte, most)
		n, err := file.ReadAt(value, from)
		value = value[:n]
		if err == io.EOF {
			return nil
		}
		return err
	})
	return value, err
}

func (d *Dir) readFile(ctx context.Context, key string, do func(*os.File) error) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		if err := isFile(root, key); err != nil {
			return err
		}
		file, err := root.Open(key)
		if err != nil {
			return err
		}
		defer file.Close()
		return do(file)
	})
}

// isFile goes through the folders of a key: a worker may have left anything in place of them.
func isFile(root *os.Root, key string) error {
	for i, c := range key + "/" {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(key[:i])
		switch {
		case err != nil:
			return err
		case i < len(key) && !info.IsDir(), i == len(key) && !info.Mode().IsRegular():
			return fs.ErrNotExist
		}
	}
	return nil
}

// Put writes a file under another name first.
func (d *Dir) Put(ctx context.Context, key string, value []byte) error {
	return d.writeFile(ctx, key, value, (*os.Root).Rename)
}

// Create does the same, and leaves a file alone that is there.
func (d *Dir) Create(ctx context.Context, key string, value []byte) error {
	return d.writeFile(ctx, key, value, (*os.Root).Link)
}

func (d *Dir) writeFile(ctx context.Context, key string, value []byte, into func(root *os.Root, from, to string) error) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		folder := path.Dir(key)
		draft := path.Join(folder, draftPrefix+rand.Text())
		defer root.Remove(draft) // after a rename it is not there any more
		if err := writeDraft(root, draft, value); err != nil {
			return err
		}
		if err := into(root, draft, key); err != nil {
			return err
		}
		for ; folder != "."; folder = path.Dir(folder) { // it may be new itself, and so may those around it
			if err := syncFolder(root, folder); err != nil {
				return err
			}
		}
		return syncFolder(root, folder)
	})
}

// draftPrefix begins the names of files that are not whole yet.
const draftPrefix = ".draft-"

// writeDraft writes a file into a folder that somebody may be deleting because nothing is in it.
func writeDraft(root *os.Root, name string, value []byte) (err error) {
	for range deleteTries {
		if err = root.MkdirAll(path.Dir(name), 0o777); err != nil { // less as the process is told to
			return err
		}
		if err = writeFile(root, name, value); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func writeFile(root *os.Root, name string, value []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(value)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolder has a new name outlast a loss of power. On Windows folders cannot be synced.
func syncFolder(root *os.Root, folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	file, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// List walks through the folder of a prefix. How a file changes cannot be told for sure by its
// times, so each has to be read.
func (d *Dir) List(ctx context.Context, prefix string) (list []Object, err error) {
	err = d.withRoot(ctx, func(root *os.Root) error {
		return fs.WalkDir(root.FS(), path.Clean(prefix), func(key string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // of a folder that a worker has closed the others are no part
				return nil
			case err != nil:
				return err
			case entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), draftPrefix):
				info, err := entry.Info()
				if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
					break
				}
				if err != nil {
					return err
				}
				list = append(list, Object{Key: key, Written: info.ModTime()})
			}
			return ctx.Err()
		})
	})
	return list, err
}

// deleteTries is how often a folder is deleted into which somebody writes meanwhile.
const deleteTries = 100

// Delete removes the folder of a prefix.
func (d *Dir) Delete(ctx context.Context, prefix string) error {
	return d.withRoot(ctx, func(root *os.Root) (err error) {
		for range deleteTries {
			if err = root.RemoveAll(path.Clean(prefix)); !errors.Is(err, fs.ErrExist) { // it is not empty
				return err
			}
		}
		return err
	})
}

// Remove deletes a file, and the folder around it when that was the last one in it.
func (d *Dir) Remove(ctx context.Context, key string) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		if err := root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = root.Remove(path.Dir(key)) // others are in it
		return nil
	})
}

// Tidy deletes what is left below a prefix of files that were not written to their end because the
// process ended, before a time, and folders that nothing is in.
func (d *Dir) Tidy(ctx context.Context, prefix string, before time.Time) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		var folders []string
		err := fs.WalkDir(root.FS(), path.Clean(prefix), func(key string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if entry.IsDir() {
				folders = append(folders, key)
			} else if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), draftPrefix) && info.ModTime().Before(before) {
				_ = root.Remove(key) // somebody else may have
			}
			return ctx.Err()
		})
		for _, folder := range slices.Backward(folders) {
			_ = root.Remove(folder) // something may be in it
		}
		return err
	})
}

// Folders reads the folder of a prefix.
func (d *Dir) Folders(ctx context.Context, prefix string) (names []string, err error) {
	err = d.withRoot(ctx, func(root *os.Root) error {
		list, err := fs.ReadDir(root.FS(), path.Clean(prefix))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, entry := range list {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
		return err
	})
	return names, err
}

// Address is the path of a file.
func (d *Dir) Address(key string) string { return filepath.Join(d.path, filepath.FromSlash(key)) }
