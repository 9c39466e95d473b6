//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverFolder is the only folder to which a server writes. The lock is held as long as this
// process lives, so that other processes can distinguish a used folder from an abandoned one.
type serverFolder struct {
	path string
	lock *os.File
}

const folderPattern = "pgtest-*"

// newFolder creates a folder below parent that owner may enter and write to.
func newFolder(parent string, owner *syscall.Credential) (*serverFolder, error) {
	path, err := os.MkdirTemp(parent, folderPattern)
	if err != nil {
		return nil, fmt.Errorf("pgtest: make the server's folder: %w", err)
	}
	f := &serverFolder{path: path}
	if err := f.lockFolder(owner); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: claim %s: %w", path, err), f.removeAll())
	}
	return f, nil
}

// lockFolder locks the lock file before the file gets its final name. So a folder whose lock file
// can be locked is always abandoned.
func (f *serverFolder) lockFolder(owner *syscall.Credential) error {
	if owner != nil {
		if err := os.Chown(f.path, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	lock, err := os.CreateTemp(f.path, "unlocked-*")
	if err != nil {
		return err
	}
	f.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	return os.Rename(lock.Name(), filepath.Join(f.path, "lock"))
}

func (f *serverFolder) removeAll() error {
	err := os.RemoveAll(f.path)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// removeAbandoned removes the folders left by killed processes below parent. It skips folders that
// cannot be removed, such as folders of other users.
func removeAbandoned(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, folderPattern, "lock"))
	if err != nil {
		return
	}
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			// The lock goes last: if the rest cannot be removed, the folder can be found again.
			path := filepath.Dir(name)
			if os.RemoveAll(filepath.Join(path, "data")) == nil {
				os.RemoveAll(path)
			}
		}
		lock.Close()
	}
}

// serverUser returns the user of the server, because PostgreSQL refuses to run as root; nil means
// the current user.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: group id of %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}
