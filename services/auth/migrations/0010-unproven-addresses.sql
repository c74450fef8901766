-- `_assumed`: the address counts as confirmed by a setting (MAILER_AUTOCONFIRM, SMS_AUTOCONFIRM), its owner has not proven it. The
-- first proof takes the account from its registrant. Accounts of older versions count as proven: nothing tells them apart.
-- `_vouched`: an admin gave the account this address, which is an admin's word for it, as with accounts that an admin made.
alter table {{prefix}}users
  add column email_assumed boolean not null default false,
  add column phone_assumed boolean not null default false,
  add column email_vouched boolean not null default false,
  add column phone_vouched boolean not null default false;
