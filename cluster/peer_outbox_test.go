package cluster

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnItemThatComesAloneIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, began := newOutbox(), time.Now()
		o.tryAdd(frameItem{number: 1})
		f, ok := o.nextFrame(t.Context())
		require.True(t, ok)
		require.Len(t, f, 1)
		require.Equal(t, began, time.Now())
	})
}

func TestItemsThatComeRightAfterAFrameAreSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, began := newOutbox(), time.Now()
		o.tryAdd(frameItem{number: 1})
		_, _ = o.nextFrame(t.Context())
		o.tryAdd(frameItem{number: 2})
		go func() {
			time.Sleep(gatherTime / 2)
			o.tryAdd(frameItem{number: 3})
		}()
		f, _ := o.nextFrame(t.Context())
		require.Len(t, f, 2)
		require.Equal(t, gatherTime, time.Since(began))
	})
}

func TestMuchIsSentWithoutWaitingForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, began := newOutbox(), time.Now()
		o.tryAdd(frameItem{number: 1})
		_, _ = o.nextFrame(t.Context())
		o.tryAdd(frameItem{number: 2, bytes: bytes.Repeat([]byte{1}, gatherBytes)})
		f, _ := o.nextFrame(t.Context())
		require.Len(t, f, 1)
		require.Equal(t, began, time.Now())
	})
}
