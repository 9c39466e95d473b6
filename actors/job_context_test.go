package actors

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACanceledJobEndsAllDerivedContexts(t *testing.T) {
	for name, off := range map[string]func(c *jobContext, end func()){
		"by itself":       func(c *jobContext, _ func()) { c.endJob() },
		"with its member": func(_ *jobContext, end func()) { end() },
	} {
		t.Run(name, func(t *testing.T) {
			member, end := context.WithCancel(t.Context())
			defer end()
			c := &jobContext{member: member}
			derived, cancel := context.WithCancel(c)
			defer cancel()
			require.NoError(t, c.Err())
			off(c, end)
			<-c.Done()
			<-derived.Done()
			require.ErrorIs(t, c.Err(), context.Canceled)
			require.ErrorIs(t, derived.Err(), context.Canceled)
		})
	}
}

func TestAJobCanceledBeforeItsFirstWaitHasEnded(t *testing.T) {
	c := &jobContext{member: t.Context()}
	c.endJob()
	require.ErrorIs(t, c.Err(), context.Canceled)
	<-c.Done()
}
