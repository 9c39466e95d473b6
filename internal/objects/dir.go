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

// Dir is a bucket in a folder of this host. It reads and writes nothing outside that folder, even
// if a worker has created a link there.
type Dir struct{ path string }

// OpenDir opens a folder as a bucket. It creates a missing folder, readable only by this user. To
// let other users write into it, create the folder beforehand.
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
	if err != nil { // a missing permission for the folder is no error of an object
		return nil, fmt.Errorf("the folder of the object store: %v", err)
	}
	return root, nil
}

// withRoot calls do with the opened folder.
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

// Get reads a file. Anything else with that name, such as a link, counts as missing, and so do
// files behind a link.
func (d *Dir) Get(ctx context.Context, key string, most int) (value []byte, err error) {
	err = d.readFile(ctx, key, func(file *os.File) error {
		value, err = io.ReadAll(io.LimitReader(file, int64(most)+1))
		return err
	})
	return value, err
}

// Range reads a part of a file.
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

// isFile reports whether a key is a regular file. It checks every folder of the key, because a
// worker may have replaced any of them.
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

// Put writes a draft file and renames it.
func (d *Dir) Put(ctx context.Context, key string, value []byte) error {
	return d.writeFile(ctx, key, value, (*os.Root).Rename)
}

// Create is like Put, but leaves an existing file unchanged.
func (d *Dir) Create(ctx context.Context, key string, value []byte) error {
	return d.writeFile(ctx, key, value, (*os.Root).Link)
}

func (d *Dir) writeFile(ctx context.Context, key string, value []byte, into func(root *os.Root, from, to string) error) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		folder := path.Dir(key)
		draft := path.Join(folder, draftPrefix+rand.Text())
		defer root.Remove(draft) // after a rename the draft no longer exists
		if err := writeDraft(root, draft, value); err != nil {
			return err
		}
		if err := into(root, draft, key); err != nil {
			return err
		}
		// the folder and its parents may be new, too
		for ; folder != "."; folder = path.Dir(folder) {
			if err := syncFolder(root, folder); err != nil {
				return err
			}
		}
		return syncFolder(root, folder)
	})
}

// draftPrefix is the prefix of the names of incomplete files.
const draftPrefix = ".draft-"

// writeDraft writes a file into a folder. It retries if the folder is deleted concurrently because
// it was empty.
func writeDraft(root *os.Root, name string, value []byte) (err error) {
	for range deleteTries {
		// reduced by the umask of the process
		if err = root.MkdirAll(path.Dir(name), 0o777); err != nil {
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

// syncFolder makes a new name survive a loss of power. Windows cannot sync folders.
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

// List walks the folder of a prefix. File times do not reliably show a change, so every file has to
// be read.
func (d *Dir) List(ctx context.Context, prefix string) (list []Object, err error) {
	err = d.withRoot(ctx, func(root *os.Root) error {
		return fs.WalkDir(root.FS(), path.Clean(prefix), func(key string, entry fs.DirEntry, err error) error {
			switch {
			// skip files in a folder that a worker has made unreadable
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
				return nil
			case err != nil:
				return err
			case entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), draftPrefix):
				info, err := entry.Info()
				if errors.Is(err, fs.ErrNotExist) { // deleted since the folder was read
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

// deleteTries is the number of attempts to delete a folder while files are being written into it.
const deleteTries = 100

// Delete removes the folder of a prefix.
func (d *Dir) Delete(ctx context.Context, prefix string) error {
	return d.withRoot(ctx, func(root *os.Root) (err error) {
		for range deleteTries {
			if err = root.RemoveAll(path.Clean(prefix)); !errors.Is(err, fs.ErrExist) { // not empty
				return err
			}
		}
		return err
	})
}

// Remove deletes a file, and its folder if that is then empty.
func (d *Dir) Remove(ctx context.Context, key string) error {
	return d.withRoot(ctx, func(root *os.Root) error {
		if err := root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = root.Remove(path.Dir(key)) // the folder is not empty
		return nil
	})
}

// Tidy deletes incomplete files below a prefix that are older than before, and empty folders.
// Incomplete files remain when a process ends during a write.
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
			} else if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(),
				draftPrefix) && info.ModTime().Before(before) {
				_ = root.Remove(key) // may be deleted already
			}
			return ctx.Err()
		})
		for _, folder := range slices.Backward(folders) {
			_ = root.Remove(folder) // may not be empty
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

// Address returns the path of a file.
func (d *Dir) Address(key string) string { return filepath.Join(d.path, filepath.FromSlash(key)) }
