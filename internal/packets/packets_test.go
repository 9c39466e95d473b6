package packets

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func message(text string) (head, data []byte) {
	head = binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	return head, []byte(text)
}

func TestAMessageLeavesInOnePiece(t *testing.T) {
	from, to := io.Pipe()
	body := &messageReader{ReadCloser: from}
	go func() {
		for _, text := range []string{"12345", "", "a longer one"} {
			head, data := message(text)
			_, _ = to.Write(head)
			_, _ = to.Write(data)
		}
		to.Close()
	}()
	p := make([]byte, 64)
	for _, size := range []int{10, 5, 17} {
		n, err := body.Read(p)
		require.NoError(t, err)
		require.Equal(t, size, n)
	}
	_, err := body.Read(p)
	require.ErrorIs(t, err, io.EOF)
}

func TestAMessageThatIsLargerThanTheBufferLeavesInPieces(t *testing.T) {
	from, to := io.Pipe()
	body := &messageReader{ReadCloser: from}
	head, data := message("0123456789")
	go func() {
		_, _ = to.Write(append(append([]byte(nil), head...), data...))
		_, _ = to.Write(head)
		to.CloseWithError(io.ErrUnexpectedEOF)
	}()
	p := make([]byte, 8)
	for _, piece := range []string{string(head) + "012", "3456789"} {
		n, err := body.Read(p)
		require.NoError(t, err)
		require.Equal(t, piece, string(p[:n]))
	}
	n, err := body.Read(p)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, headBytes, n, "what there was of the last one goes along")
}
