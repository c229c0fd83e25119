-- Lines and characters (UTF-16 code units) of a text, so that its beginning can be shown without reading all of it.
-- null: not counted yet.
alter table files add column line_count integer, add column char_count integer;
