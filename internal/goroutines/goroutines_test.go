package goroutines_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/goroutines"
)

func TestEachFunctionStartsWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := goroutines.New(2)
		defer p.Close()
		release, begun := make(chan struct{}), make(chan struct{}, 100)
		for range 100 {
			p.Run(func() {
				begun <- struct{}{}
				<-release
			})
		}
		synctest.Wait()
		require.Len(t, begun, 100)
		close(release)
	})
}

func TestIdleGoroutinesAreBoundedAndEndWithThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		p := goroutines.New(3)
		for range 10 {
			p.Run(func() {})
		}
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+3)
		var used int
		for range 10 { // an idle one runs them in sequence
			p.Run(func() { used++ })
			synctest.Wait()
		}
		require.Equal(t, 10, used)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+3)
		p.Close()
		p.Close()
		synctest.Wait()
		require.Equal(t, before, runtime.NumGoroutine())
		p.Run(func() { used++ })
		synctest.Wait()
		require.Equal(t, 11, used, "what comes later is run, too")
	})
}
