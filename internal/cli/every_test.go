package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// putSchedule sends a schedule to a server and returns the status and the answer.
func putSchedule(t *testing.T, url string, spec map[string]string) (status int, answer string) {
	t.Helper()
	body, err := json.Marshal(spec)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/v1/schedules/often", strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func TestAnIntervalThatNoScheduleCanKeepIsRefusedEverywhere(t *testing.T) {
	at := server(t)
	url := at[1]
	const finer, shorter, none = "is finer than a millisecond", "is shorter than 1s", "is no time between slots"
	for _, tt := range []struct{ every, want, flag string }{
		{"500us", finer, finer}, {"0.4ms", finer, finer}, {"1ns", finer, finer}, {"1.0005s", finer, finer},
		{"1500.5ms", finer, finer}, {"1m1us", finer, finer},
		{"1ms", shorter, shorter}, {"999ms", shorter, shorter}, {"0", none, none}, {"0s", none, none},
	} {
		for _, spec := range []map[string]string{{"every": tt.every}, {"every": tt.every, "cron": "@daily"}} {
			spec["flow"] = "double"
			status, answer := putSchedule(t, url, spec)
			require.Equal(t, http.StatusBadRequest, status, "%s: %s", tt.every, answer)
			require.Contains(t, answer, "body.every", tt.every)
			if spec["cron"] == "" {
				require.Contains(t, answer, tt.want, tt.every)
			}
		}
		status, answer := putSchedule(t, url, map[string]string{"flow": "double", "cron": "@every " + tt.every})
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", tt.every, answer)
		require.Contains(t, answer, tt.want, "cron: @every %s", tt.every)

		for _, fields := range []string{"every: " + tt.every, "every: " + tt.every + ", cron: '@daily'"} {
			file := write(t, "often.yaml", "nodes: {a: {service: s}}\nschedule: {"+fields+"}\n")
			for _, args := range [][]string{{"flow", "validate", file}, append([]string{"flow", "apply", file}, at...)} {
				got := call(t, args...)
				require.NotZero(t, got.code, fields)
				require.Contains(t, got.stdout+got.stderr, "schedule.every: ", fields)
				if !strings.Contains(fields, "cron") && tt.every != "0" { // "0" is a number, and has no unit
					require.Contains(t, got.stdout+got.stderr, tt.want, fields)
				}
			}
		}
		for _, args := range [][]string{{"schedule", "set", "often", "--flow", "double"}, {"schedule", "next"}} {
			got := call(t, append(append(args, "--every", tt.every), at...)...)
			require.NotZero(t, got.code, tt.every)
			require.Contains(t, got.stderr, "every", tt.every)
			require.Contains(t, got.stderr, tt.flag, tt.every)
		}
	}
	status, answer := putSchedule(t, url, map[string]string{"flow": "double", "every": "1.001s"})
	require.Equal(t, http.StatusCreated, status, answer)
	require.Contains(t, answer, `"1.001s"`)
}
