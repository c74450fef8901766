-- alone
-- For GET /admin/messages?channel=: few SMS among many mails.
create index concurrently if not exists {{prefix}}messages_channel_idx
  on {{prefix}}messages (channel, created_at desc, id);
