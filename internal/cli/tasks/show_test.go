package tasks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestAStepIsFailedWithAReason(t *testing.T) {
	require.Equal(t, "task_error: boom", stepText(&wire.Step{Reason: "task_error", Error: "boom"}))
	require.Equal(t, "boom", stepText(&wire.Step{Error: "boom"}), "one that undoes has no reason")
	require.Equal(t, "dependency_failed", stepText(&wire.Step{Reason: "dependency_failed"}))
}
