package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryFaultOfAScheduleIsReported(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	wrong := obj{"flow": slug, "cron": "at noon", "timezone": "Berlin", "jitter": "soon"}
	for method, path := range map[string]string{"PUT": "/v1/schedules/daily", "POST": "/v1/schedules-preview"} {
		p := s.refused(400, "body.jitter", method, path, wrong)
		var fields []string
		for _, fault := range p["errors"].([]any) {
			fields = append(fields, fault.(obj)["field"].(string))
		}
		require.Equal(t, []string{"body.jitter", "body.timezone", "body.cron"}, fields)
	}
	p := s.refused(400, "body.every", "PUT", "/v1/schedules/daily", obj{"flow": slug, "every": "soon"})
	require.NotContains(t, p, "errors", "nothing else is wrong")
}
