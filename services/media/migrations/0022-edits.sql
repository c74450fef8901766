-- Edited sources: `sha256` is then the key of file and edit, so that equal edits share a source; this is the hash of the file.
-- Null where nothing was edited. An older version that still runs finds no file for such a source, and fails its clips.
alter table {{prefix}}sources add column file_sha256 bytea;
