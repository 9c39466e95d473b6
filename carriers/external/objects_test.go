package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// counted counts the calls of a bucket, and adds versions to the objects of its lists.
type counted struct {
	objects.Bucket
	gets, lists int
	broken      error
}

func (c *counted) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if c.gets++; c.broken != nil {
		return nil, c.broken
	}
	return c.Bucket.Get(ctx, key, most)
}

func (c *counted) List(ctx context.Context, prefix string) ([]objects.Object, error) {
	c.lists++
	list, err := c.Bucket.List(ctx, prefix)
	for i := range list {
		text, err := c.Bucket.Get(ctx, list[i].Key, 1000)
		if err != nil {
			return nil, err
		}
		list[i].Version = string(text)
	}
	return list, err
}

// desk is an object store whose clock the test controls.
type desk struct {
	*testing.T
	*external.Objects
	*counted
	now int64
}

func newDesk(t *testing.T) *desk {
	b, err := objects.OpenDir(t.TempDir())
	require.NoError(t, err)
	d := &desk{T: t, counted: &counted{Bucket: b}, now: 1_000_000}
	d.Objects = external.NewObjects(external.ObjectsOptions{Bucket: d.counted, Now: func() int64 { return d.now }})
	return d
}

// begin makes a unit of task t wait for a worker.
func (d *desk) begin(unit int) flow.External {
	rep := d.Start(d.Context(), flow.Job{Task: "t", Address: flow.Address{Node: "a", Visit: 1,
		Unit: unit, Attempt: 1}, Exec: &flow.Exec{Type: flow.ExecExternal, Service: flow.ObjectStore}}, false)
	require.Empty(d, rep.Error)
	x := rep.Deferred[0]
	x.Task, x.StartedAt = "t", d.now
	return x
}

// look polls like a member, and keeps the results.
func (d *desk) look(x *flow.External) flow.ExternalStatus {
	d.Helper()
	status, err := d.Poll(d.Context(), *x)
	require.NoError(d, err)
	x.Memo, x.Failures = status.Memo, 0
	return status
}

func (d *desk) says(x flow.External, text string) {
	require.NoError(d, d.Put(d.Context(), x.ID+"status.json", []byte(text)))
}

func TestARepeatedStartFindsTheSameFiles(t *testing.T) {
	d := newDesk(t)
	first := d.begin(0)
	d.now += 5000
	again := d.begin(0)
	require.Equal(t, first.ID, again.ID)
	text, err := d.Get(t.Context(), first.ID+"spec.json", 10_000)
	require.NoError(t, err)
	var spec objects.Spec
	require.NoError(t, json.Unmarshal(text, &spec))
	require.Equal(t, time.UnixMilli(1_000_000).UTC(), spec.CreatedAt)
}

func TestAMemberThatCannotReadFilesDoesNotCountThatAsSilence(t *testing.T) {
	d := newDesk(t)
	x := d.begin(0)
	d.says(x, `{"status": "running", "heartbeat": 1}`)
	require.False(t, d.look(&x).Ended)
	d.broken = errors.New("the store is away")
	d.now += 3_600_000
	_, err := d.Poll(t.Context(), x)
	require.ErrorIs(t, err, d.broken)
	d.broken, x.Failures = nil, 1
	require.False(t, d.look(&x).Ended, "it could not be heard")
	d.now += 60_000
	status := d.look(&x)
	require.Equal(t, "heartbeat timeout", status.Error)
	_, err = d.Get(t.Context(), x.ID+"cancel.json", 10)
	require.NoError(t, err, "a worker that comes back is told")
}

func TestASilentWorkerIsDetectedDespiteFailedReads(t *testing.T) {
	d := newDesk(t)
	x := d.begin(0)
	d.says(x, `{"status": "running", "heartbeat": 1}`)
	require.False(t, d.look(&x).Ended)
	status, began := flow.ExternalStatus{}, d.now
	for i := 0; !status.Ended; i++ {
		require.Less(t, d.now-began, int64(200_000))
		d.now += 5000
		x.Failures = i % 2 // the store was unavailable just before
		status = d.look(&x)
	}
	require.Equal(t, "heartbeat timeout", status.Error)
}

func TestAHeartbeatMayHaveAnyContentAndLittleOfItIsKept(t *testing.T) {
	for name, beat := range map[string]string{"no text": "\"\xff\"",
		"long": `"` + strings.Repeat("x", 100_000) + `"`, "an object": `{"at": [1, "\u0000"]}`} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			x := d.begin(0)
			d.says(x, `{"status": "running", "heartbeat": `+beat+`}`)
			require.False(t, d.look(&x).Ended)
			require.Less(t, len(x.Memo), 1000)
			d.now += 50_000
			require.False(t, d.look(&x).Ended)
			d.now += 10_000
			require.Equal(t, "heartbeat timeout", d.look(&x).Error, "it has not changed")
		})
	}
}

func TestManyAttemptsOfARunArePolledWithOneList(t *testing.T) {
	d := newDesk(t)
	open := make([]flow.External, 200)
	for i := range open {
		open[i] = d.begin(i)
		d.says(open[i], fmt.Sprintf(`{"status": "running", "heartbeat": %d}`, i))
	}
	round := func() (ended int) {
		d.gets, d.lists = 0, 0
		for i := range open {
			if status := d.look(&open[i]); status.Ended {
				require.Empty(t, status.Error)
				ended++
			}
		}
		return ended
	}
	require.Zero(t, round())
	d.now += 2000
	require.Zero(t, round())
	d.now += 2000
	require.Zero(t, round())
	require.Equal(t, []int{0, 1}, []int{d.gets, d.lists}, "nothing has changed")
	d.says(open[7], `{"status": "success"}`)
	d.now += 2000
	require.Equal(t, 1, round())
	require.Equal(t, []int{2, 1}, []int{d.gets, d.lists}, "its status and its output")
}

func TestOutputsCannotNameFilesOfOtherAttempts(t *testing.T) {
	d := newDesk(t)
	x := d.begin(0)
	x.Task = "another"
	require.Contains(t, d.look(&x).Error, "no worker has files in")
	x.Task, x.Data = "t", []byte(`{"run": "t", "folder": "runs/t/../u/1/"}`)
	require.Contains(t, d.look(&x).Error, "no worker has files in")
}

func TestWithoutAnObjectStoreJobsFailAtOnce(t *testing.T) {
	o := external.NewObjects(external.ObjectsOptions{})
	rep := o.Start(t.Context(), flow.Job{Task: "t", Exec: &flow.Exec{Type: flow.ExecExternal}}, false)
	require.True(t, rep.Fatal)
	require.Contains(t, rep.Error, "--object-store")
}
