//go:build !linux

package attack

// memory returns 0: only Linux provides it.
func memory(int) (now, peak float64, err error) { return 0, 0, nil }

func forgetPeak(int) error { return nil }
