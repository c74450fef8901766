-- An account that an admin made is an admin's word for its addresses: nobody takes them for want of a confirmation. Whether a
-- confirmation was sent does not tell, since anybody can ask for one.

alter table {{prefix}}users add column made_by_admin boolean not null default false;
