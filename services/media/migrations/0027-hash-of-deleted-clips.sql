-- Hash of the file that a deleted clip had, by which its bytes can still be blocked. An older version that still runs leaves it
-- null, and the bytes of the clips that it deletes cannot be blocked.
alter table {{prefix}}clips add column deleted_sha256 bytea;
