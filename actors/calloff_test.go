package actors

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAJobIsCalledOffForAllWhoWaitForIt(t *testing.T) {
	for name, off := range map[string]func(c *callOff, end func()){
		"by itself":       func(c *callOff, _ func()) { c.now() },
		"with its member": func(_ *callOff, end func()) { end() },
	} {
		t.Run(name, func(t *testing.T) {
			member, end := context.WithCancel(t.Context())
			defer end()
			c := &callOff{member: member}
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

func TestAJobThatWasCalledOffBeforeAnybodyWaitsIsOver(t *testing.T) {
	c := &callOff{member: t.Context()}
	c.now()
	require.ErrorIs(t, c.Err(), context.Canceled)
	<-c.Done()
}
