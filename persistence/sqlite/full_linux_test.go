package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/troupe-engine/troupe/persistence"
)

// smallDisk returns a directory on a disk of its own, or any directory if mounting is not
// permitted.
func smallDisk(t *testing.T) (dir string, isSmall bool) {
	dir = t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return dir, false
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir, true
}

func TestAFullDiskIsTheReason(t *testing.T) {
	dir, isSmall := smallDisk(t)
	f := openFor(t, filepath.Join(dir, "troupe.db"))
	if !isSmall {
		roomFor(t, f.store)("1")
	}
	var err error
	for i := 0; err == nil; i++ {
		err = f.CreateFlow(t.Context(), persistence.Flow{ID: strings.Repeat("f", i+1), Description: strings.Repeat("x", 256<<10)})
	}
	require.ErrorIs(t, err, persistence.ErrUnavailable)
	require.Equal(t, "its disk is full", persistence.ReasonOf(err))
	_, _, err = f.ListFlows(t.Context(), 0, 10)
	require.NoError(t, err, "what is there can be read")
}
