package fakes_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

// inAzure returns a container of the fake, through Azure's own client with a key.
func inAzure(t *testing.T, key string) *container.Client {
	a := fakes.NewAzure()
	t.Cleanup(a.Close)
	a.Make("c")
	account, err := azblob.NewSharedKeyCredential(fakes.AzureAccount, key)
	require.NoError(t, err)
	client, err := container.NewClientWithSharedKeyCredential(a.URL+"/c", account, nil)
	require.NoError(t, err)
	return client
}

func blobText(t *testing.T, c *container.Client, name string, part blob.HTTPRange) (string, error) {
	answer, err := c.NewBlobClient(name).DownloadStream(t.Context(), &blob.DownloadStreamOptions{Range: part})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text), nil
}

// Azure's own client validates the answers of the fake.
func TestAzureClientAcceptsTheFakeBlobStorage(t *testing.T) {
	c := inAzure(t, fakes.AzureKey)
	absent := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	put := func(name, text string, o *azblob.UploadStreamOptions) error {
		_, err := c.NewBlockBlobClient(name).UploadStream(t.Context(), strings.NewReader(text), o)
		return err
	}
	require.NoError(t, put("a/b", "0123456789", &azblob.UploadStreamOptions{AccessConditions: absent}))
	require.True(t, bloberror.HasCode(put("a/b", "x", &azblob.UploadStreamOptions{AccessConditions: absent}), bloberror.BlobAlreadyExists))
	for want, part := range map[string]blob.HTTPRange{"0123456789": {},
		"345": {Offset: 3, Count: 3}, "89": {Offset: 8, Count: 7}, "6789": {Offset: 6}} {
		text, err := blobText(t, c, "a/b", part)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	_, err := blobText(t, c, "a/b", blob.HTTPRange{Offset: 10, Count: 1})
	require.True(t, bloberror.HasCode(err, bloberror.InvalidRange), "%v", err)
	_, err = blobText(t, c, "none", blob.HTTPRange{})
	require.True(t, bloberror.HasCode(err, bloberror.BlobNotFound), "%v", err)

	known, err := c.NewBlobClient("a/b").GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 10, *known.ContentLength)
	require.Len(t, known.ContentMD5, 16)
	_, err = c.NewBlobClient("none").GetProperties(t.Context(), nil)
	require.True(t, bloberror.HasCode(err, bloberror.BlobNotFound), "%v", err)
	_, err = c.NewBlobClient("a/b").Delete(t.Context(), nil)
	require.NoError(t, err)
	_, err = c.NewBlobClient("a/b").Delete(t.Context(), nil)
	require.True(t, bloberror.HasCode(err, bloberror.BlobNotFound), "%v", err)
}

func TestAzureClientWritesInBlocksAndListsInPages(t *testing.T) {
	c := inAzure(t, fakes.AzureKey)
	long := strings.Repeat("0123456789", 300_000)
	_, err := c.NewBlockBlobClient("a b/long?").UploadStream(t.Context(),
		bytes.NewReader([]byte(long)), &azblob.UploadStreamOptions{BlockSize: 1 << 20})
	require.NoError(t, err)
	text, err := blobText(t, c, "a b/long?", blob.HTTPRange{})
	require.NoError(t, err)
	require.Equal(t, long, text)
	for _, name := range []string{"runs/1/a", "runs/1/b", "runs/2/a", "runs/c"} {
		_, err := c.NewBlockBlobClient(name).UploadStream(t.Context(), strings.NewReader(name), nil)
		require.NoError(t, err)
	}
	var flat, level []string
	for pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr[int32](2)}); pages.More(); {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Segment.BlobItems), 2)
		for _, b := range page.Segment.BlobItems {
			flat = append(flat, *b.Name)
			require.False(t, b.Properties.LastModified.IsZero())
		}
	}
	require.Equal(t, []string{"a b/long?", "runs/1/a", "runs/1/b", "runs/2/a", "runs/c"}, flat)
	for pages := c.NewListBlobsHierarchyPager("/",
		&container.ListBlobsHierarchyOptions{Prefix: to.Ptr("runs/"),
			MaxResults: to.Ptr[int32](1)}); pages.More(); {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, b := range page.Segment.BlobPrefixes {
			level = append(level, *b.Name)
		}
		for _, b := range page.Segment.BlobItems {
			level = append(level, *b.Name)
		}
	}
	require.Equal(t, []string{"runs/1/", "runs/2/", "runs/c"}, level)
}

func TestAzureRequestWithoutKeyIsRefused(t *testing.T) {
	_, err := blobText(t, inAzure(t, "YW5vdGhlciBvbmU="), "a", blob.HTTPRange{})
	require.True(t, bloberror.HasCode(err, bloberror.AuthenticationFailed), "%v", err)
}
