-- Searches and sorted lists of clips.

-- Form in which texts are compared, whatever the locale of the database. Compatible characters are one (NFKC), and
-- neither case nor accents matter. The letters of the table have no decomposition.
create function {{prefix}}search_key(text) returns text language sql immutable strict parallel safe as $$
  select case when octet_length($1) = length($1) then lower($1 collate "C") else
    replace(replace(replace(lower(normalize(translate(regexp_replace(normalize($1, NFKD), '[\u0300-\u036f]', '', 'g'),
      'ÆÐØÞðøĐđĦħıŁłŊŒŦŧƁƂƄƆƇƉƊƋƎƏƐƑƓƔƖƗƘƜƝƟƢƤƦƧƩƬƮƱƲƳƵƷƸƼǤǶǷȜȠȢȤȺȻȽȾɁɃɄɅɆɈɊɌɎͰͲͶͿΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣ'
      || 'ΤΥΦΧΨΩςϏϘϚϜϞϠϢϤϦϨϪϬϮϷϺϽϾϿЂЄЅІЈЉЊЋЏАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѸѺѼѾҀҊҌҎҐҒҔҖҘҚҜҞҠ'
      || 'ҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӃӅӇӉӋӍӔӘӠӨӶӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖ',
      'ædoþdoddhhillŋœttɓƃƅɔƈɖɗƌǝəɛƒɠɣɩɨƙɯɲɵƣƥʀƨʃƭʈʊʋƴƶʒƹƽǥƕƿȝƞȣȥⱥȼƚⱦɂƀʉʌɇɉɋɍɏͱͳͷϳαβγδεζηθικλμνξοπρσ'
      || 'τυφχψωσϗϙϛϝϟϡϣϥϧϩϫϭϯϸϻͻͼͽђєѕіјљњћџабвгдежзиклмнопрстуфхцчшщъыьэюяѡѣѥѧѩѫѭѯѱѳѵѹѻѽѿҁҋҍҏґғҕҗҙқҝҟҡ'
      || 'ңҥҧҩҫҭүұҳҵҷҹһҽҿӏӄӆӈӊӌӎӕәӡөӷӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ'
    ), NFC) collate "C"), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe') end
$$;

-- Words of a text, a hundred at most, in the order of their last appearance. Everything but letters, digits and the
-- marks of scripts separates words. Chinese and Japanese are written without blanks, and emoji beside words: each
-- character is a word.
create function {{prefix}}search_words(text) returns text[] language sql immutable strict parallel safe as $$
  select coalesce(array_agg(word order by n), '{}') from (
    select left(part, 64) as word, max(n) as n
    from regexp_split_to_table(
      regexp_replace({{prefix}}search_key($1), '([\u2600-\u27bf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf'
        || '\u4e00-\u9fff\uf900-\ufaff\U0001f000-\U0001faff\U00020000-\U000323af])', ' \1 ', 'g'),
      '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u02c2-\u02df\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3'
        || '\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u2000-\u206f\u20a0-\u20cf\u2190-\u25ff\u27c0-\u2bff'
        || '\u2e00-\u2e7f\u3000-\u3004\u3008-\u3040\ufe00-\ufe6f\uff00-\uff65\U000e0000-\U000e01ef]+'
    ) with ordinality as parts (part, n)
    where part <> '' group by 1 order by 2 limit 100
  ) words
$$;

-- A row for each clip that is not deleted: sort keys of lists, and all words of title, tags and author. Bytes and
-- duration are the source's; its duration changes once, if its files prove shorter (source_measured).
create table {{prefix}}clip_search (
  clip_id text collate "C" primary key,
  token_id uuid,
  created_at timestamptz not null,
  bytes bigint not null,
  duration_ms bigint not null,
  nsfw boolean not null,
  title_key text collate "C" not null, -- its first 60 characters; empty without a title
  words tsvector not null
);

create index {{prefix}}clip_search_title_idx on {{prefix}}clip_search (title_key, clip_id);
create index {{prefix}}clip_search_bytes_idx on {{prefix}}clip_search (bytes, clip_id);
create index {{prefix}}clip_search_duration_idx on {{prefix}}clip_search (duration_ms, clip_id);
create index {{prefix}}clip_search_title_of_token_idx on {{prefix}}clip_search (token_id, title_key, clip_id);
create index {{prefix}}clip_search_bytes_of_token_idx on {{prefix}}clip_search (token_id, bytes, clip_id);
create index {{prefix}}clip_search_duration_of_token_idx on {{prefix}}clip_search (token_id, duration_ms, clip_id);

-- A row for each word of each of them, in the order of lists. A page of a word is one walk along an index, as of a tag.
create table {{prefix}}clip_words (
  created_at timestamptz not null,
  token_id uuid,
  clip_id text collate "C" not null,
  word text collate "C" not null
);

create index {{prefix}}clip_words_newest_idx on {{prefix}}clip_words (word, created_at desc, clip_id desc);
create index {{prefix}}clip_words_of_token_idx on {{prefix}}clip_words (token_id, word, created_at desc, clip_id desc);

-- Triggers keep both. A foreign key would delete the row of clip_search first, which has the words that are to be
-- deleted.
create function {{prefix}}list_clip_words() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    with unlisted as (delete from {{prefix}}clip_search where clip_id = old.id returning created_at, words)
    delete from {{prefix}}clip_words listed using unlisted, unnest(tsvector_to_array(words)) old_word
      where listed.word = old_word and listed.created_at = unlisted.created_at and listed.clip_id = old.id;
    if tg_op = 'DELETE' then return null; end if;
  end if;
  with listed as (
    insert into {{prefix}}clip_search (clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words)
      select new.id, new.token_id, new.created_at, source.bytes,
        coalesce(round((source.info ->> 'durationSeconds')::numeric * 1000), 0), new.nsfw,
        left({{prefix}}search_key(coalesce(new.title, '')), 60),
        array_to_tsvector({{prefix}}search_words(
          concat_ws(' ', new.title, array_to_string(new.tags, ' '), new.attribution ->> 'user')))
      from {{prefix}}sources source where source.id = new.source_id and new.deleted_at is null
      returning created_at, token_id, clip_id, words
  )
  insert into {{prefix}}clip_words (created_at, token_id, clip_id, word)
    select created_at, token_id, clip_id, unnest(tsvector_to_array(words)) from listed;
  return null;
end $$;

create trigger {{prefix}}clip_listed after insert on {{prefix}}clips
  for each row when (new.deleted_at is null) execute function {{prefix}}list_clip_words();
create trigger {{prefix}}clip_texts_changed
  after update of title, tags, attribution, nsfw, token_id, source_id, deleted_at on {{prefix}}clips for each row
  when ((old.title, old.tags, old.attribution, old.nsfw, old.token_id, old.source_id, old.deleted_at) is distinct from
    (new.title, new.tags, new.attribution, new.nsfw, new.token_id, new.source_id, new.deleted_at))
  execute function {{prefix}}list_clip_words();
-- The files of a damaged source may be shorter than it says.
create function {{prefix}}list_clip_length() returns trigger language plpgsql as $$
begin
  update {{prefix}}clip_search listed set duration_ms = round((new.info ->> 'durationSeconds')::numeric * 1000)
    from {{prefix}}clips clip where clip.source_id = new.id and listed.clip_id = clip.id;
  return null;
end $$;

create trigger {{prefix}}source_measured after update of info on {{prefix}}sources for each row
  when ((old.info ->> 'durationSeconds') is distinct from (new.info ->> 'durationSeconds'))
  execute function {{prefix}}list_clip_length();
create trigger {{prefix}}clip_unlisted after delete on {{prefix}}clips
  for each row when (old.deleted_at is null) execute function {{prefix}}list_clip_words();
