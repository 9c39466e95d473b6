package postgres

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// planNode is a step of a plan, with the number of rows that it read or produced.
type planNode struct {
	Kind    string     `json:"Node Type"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Plans   []planNode `json:"Plans"`
}

// read returns the number of rows that scans of tables and indexes pass.
func (n *planNode) read() (rows float64) {
	switch n.Kind {
	case "Index Scan", "Index Only Scan", "Seq Scan", "Bitmap Heap Scan":
		rows = (n.Rows + n.Removed) * n.Loops
	}
	for i := range n.Plans {
		rows += n.Plans[i].read()
	}
	return rows
}

func TestADecisionAboutAKeyReadsFewWaitingRows(t *testing.T) {
	const analyze = "ANALYZE troupe.permits"
	crowd := []string{`INSERT INTO troupe.permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn)
		SELECT 't', i::text, CASE WHEN i <= 50000 THEN 'busy' ELSE 'k' || i % 40 END, i % 1024, 1, 0, CASE WHEN i BETWEEN 10 AND 14 THEN 'refuse' ELSE '' END, 0, CASE WHEN i < 4 THEN 'small' ELSE 'large' || i % 3 END, i, ''
		FROM generate_series(1, 52000) AS i`, "INSERT INTO troupe.permit_keys (key) VALUES ('busy')"}
	for stats, plant := range map[string][]string{"new statistics": append(crowd, analyze),
		"none": crowd, "statistics of nothing": append([]string{analyze}, crowd...)} {
		t.Run(stats, func(t *testing.T) { readsFew(t, plant) })
	}
}

func readsFew(t *testing.T, plant []string) {
	ctx := t.Context()
	opened, err := Open(ctx, pgtest.DSN(t), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	for _, statement := range append([]string{"ALTER TABLE troupe.permits SET (autovacuum_enabled = off)"}, plant...) {
		_, err := s.execCount(ctx, "plant", statement)
		require.NoError(t, err)
	}
	for _, tt := range []struct {
		what, query string
		args        []any
		most        float64
	}{
		{"those who wait", listWaiting, []any{"busy", persistence.PermitsAtOnce}, 1000},
		{"those who do not wait", listHasty, []any{"busy", persistence.HastyAtOnce}, 10},
		{"keys", openKeys, []any{nil, "", 100}, 100},
		{"keys of a shard", openKeys, []any{[]int{7}, "", 100}, 100},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var text string
			require.NoError(t, s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
				return conn.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+tt.query, tt.args...).Scan(&text)
			}))
			var plan []struct{ Plan planNode }
			require.NoError(t, json.Unmarshal([]byte(text), &plan))
			read := plan[0].Plan.read()
			require.Positive(t, read, text)
			require.LessOrEqual(t, read, tt.most, text)
		})
	}
}

func TestPagesHaveSettingsOfTheirOwn(t *testing.T) {
	opened, err := Open(t.Context(), pgtest.DSN(t), Options{Connections: 1})
	require.NoError(t, err)
	defer opened.Close()
	settings := func(reads func(context.Context, *database, string, func(listing.Row, *string) error,
		string, ...any) ([]string, error)) string {
		list, err := reads(t.Context(), opened.(*store).database, "show", listing.ScanValue[string],
			"SELECT current_setting('enable_sort') || ' ' || current_setting('jit')")
		require.NoError(t, err)
		return list[0]
	}
	others := settings(readRows[string])
	require.Equal(t, "off off", settings(readPage[string]), "what is sorted although sorting is off is not worth a compilation")
	require.Equal(t, others, settings(readRows[string]))
}

func TestUnusedKeysAreForgottenInPortions(t *testing.T) {
	opened, err := Open(t.Context(), pgtest.DSN(t), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	_, err = s.execCount(t.Context(), "plant",
		"INSERT INTO troupe.permit_keys (key, idle_at) SELECT 'k' || i, CASE WHEN i > 25 THEN "+now+
			" + 60000 ELSE i END FROM generate_series(1, 30) AS i")
	require.NoError(t, err)
	for _, want := range []int{10, 10, 5, 0} {
		n, err := s.ForgetKeys(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	left, err := readRows(t.Context(), s.database, "list keys", listing.ScanValue[string],
		"SELECT key FROM troupe.permit_keys ORDER BY key")
	require.NoError(t, err)
	require.Equal(t, []string{"k26", "k27", "k28", "k29", "k30"}, left)
}
